"""What each metric means, in a line, with its formula and source; docs/metrics.md says more.

R[i,j] is the score on task j after learning task i, k the number of tasks learned, b_j the score
of the untrained learner on task j.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Explained(NamedTuple):
    """What a metric means.

    Attributes:
        meaning: what it is, in a few words.
        formula: how it is computed.
        source: who defined it.
        undefined: when it has no value; empty if it always has one.
    """

    meaning: str
    formula: str
    source: str
    undefined: str = ""


GEM = "Lopez-Paz & Ranzato 2017, arXiv 1706.08840"
MER = "Riemer et al. 2019, arXiv 1810.11910"
DIAZ = "Díaz-Rodríguez et al. 2018, arXiv 1810.13166"
RWALK = "Chaudhry et al. 2018, arXiv 1801.10112"
LANGE = "De Lange et al. 2023, arXiv 2205.13452"
DAVARI = "Davari et al. 2022, arXiv 2203.13381"
FLIPS = "#(right then, wrong now)"

OF_TASKS: Mapping[str, Explained] = {
    "accuracy": Explained(
        "fraction of right answers", "#right / n", "GLUE, Wang et al. 2019, arXiv 1804.07461"
    ),
    "f1": Explained(
        "harmonic mean of precision and recall of class 1",
        "2 P R / (P + R)",
        "GLUE, Wang et al. 2019, arXiv 1804.07461",
        "class 1 is neither right nor predicted: 0 then, and noted",
    ),
    "macro_f1": Explained(
        "mean F1 of the classes that rows have",
        "(1/K) Σ_c 2 P_c R_c / (P_c + R_c)",
        "SuperGLUE (CB), Wang et al. 2019, arXiv 1905.00537; scikit-learn",
    ),
    "matthews_correlation": Explained(
        "correlation of classes predicted and right",
        "covariance / product of deviations",
        "Matthews 1975; GLUE, Wang et al. 2019, arXiv 1804.07461",
        "all predictions or all labels are equal: 0 then, and noted",
    ),
    "spearman": Explained(
        "correlation of ranks predicted and right",
        "Pearson's correlation of the ranks",
        "Spearman 1904; GLUE, Wang et al. 2019, arXiv 1804.07461",
        "all predictions or all scores are equal: 0 then, and noted",
    ),
    "pearson": Explained(
        "linear correlation of scores predicted and right",
        "covariance / product of deviations",
        "GLUE (STS-B), Wang et al. 2019, arXiv 1804.07461",
        "all predictions or all scores are equal: 0 then, and noted",
    ),
    "answer_f1": Explained(
        "F1 of an answer's words, best over references",
        "mean over rows of 2 P R / (P + R)",
        "SQuAD, Rajpurkar et al. 2016, arXiv 1606.05250",
    ),
    "exact_match": Explained(
        "fraction of answers that equal a reference",
        "mean over rows of 0 or 1",
        "SQuAD, Rajpurkar et al. 2016, arXiv 1606.05250",
    ),
}
"""The metrics that a task can name as its own."""

OF_RUNS: Mapping[str, Explained] = {
    "average_score": Explained(
        "mean score at the end (ACC)", "(1/k) Σ_{j≤k} R[k,j]", f"{GEM}, eq. 2", "no task"
    ),
    "retained_score": Explained("ACC under another name (RA)", "= average_score", MER, "no task"),
    "average_incremental_score": Explained(
        "mean of ACC over the stream (AIA)",
        "(1/k) Σ_i ACC_i",
        "Rebuffi et al. 2017, arXiv 1611.07725",
        "no task",
    ),
    "a_diaz": Explained(
        "mean of all evaluations (A)", "Σ_{i≥j} R[i,j] / (k(k+1)/2)", f"{DIAZ}, A", "no task"
    ),
    "learning_score": Explained(
        "mean score right after learning (LA)", "(1/k) Σ_j R[j,j]", MER, "no task"
    ),
    "bwt": Explained(
        "backward transfer: end minus right after",
        "(1/(k-1)) Σ_{j<k} (R[k,j] - R[j,j])",
        f"{GEM}, eq. 3",
        "k < 2",
    ),
    "bti": Explained(
        "backward transfer, the last task counted as 0",
        "RA - LA = BWT (k-1)/k",
        MER,
        "no task",
    ),
    "bwt_diaz": Explained(
        "backward transfer over all rows",
        "Σ_{i>j} (R[i,j] - R[j,j]) / (k(k-1)/2)",
        f"{DIAZ}, BWT",
        "k < 2",
    ),
    "rem": Explained("remembering", "1 - abs(min(BWT_D, 0))", f"{DIAZ}, REM", "k < 2"),
    "bwt_plus": Explained("positive backward transfer", "max(BWT_D, 0)", f"{DIAZ}, BWT+", "k < 2"),
    "forgetting": Explained(
        "drop from the best earlier score to the end",
        "(1/(k-1)) Σ_{j<k} (max_{j≤l<k} R[l,j] - R[k,j])",
        f"{RWALK}, eq. 3",
        "k < 2",
    ),
    "forgetting_first": Explained(
        "drop from the first score to the end",
        "-BWT",
        "Avalanche's Forgetting, Lomonaco et al. 2021, arXiv 2104.00405",
        "k < 2",
    ),
    "fwt": Explained(
        "forward transfer: score before learning a task",
        "(1/(k-1)) Σ_{2≤j≤k} (R[j-1,j] - b_j)",
        f"{GEM}, eq. 4",
        "k < 2; no evaluation.unseen, no baseline",
    ),
    "fwt_diaz": Explained(
        "mean score of unseen tasks",
        "Σ_{i<j} R[i,j] / (k(k-1)/2)",
        f"{DIAZ}, FWT",
        "k < 2; no evaluation.unseen",
    ),
    "min_acc": Explained(
        "worst score since the end of each task",
        "(1/(k-1)) Σ_{j<k} min_n A(E_j, f_n)",
        f"{LANGE}, min-ACC",
        "k < 2; no probe since the end of a task",
    ),
    "wc_acc": Explained(
        "score to rely on at any time (worst case)",
        "A(E_k, f_t)/k + (1 - 1/k) min-ACC",
        f"{LANGE}, WC-ACC",
        "no probe in the last task",
    ),
    "wf_10": Explained(
        "greatest drop within 10 evaluations",
        "mean over tasks of max over windows of max_{m<n} (A_m - A_n)",
        f"{LANGE}, WF^w",
        "a task never probed",
    ),
    "wp_10": Explained(
        "greatest rise within 10 evaluations",
        "mean over tasks of max over windows of max_{m<n} (A_n - A_m)",
        f"{LANGE}, WP^w",
        "a task never probed",
    ),
    "lca_10": Explained(
        "learning curve area, first 10 mini-batches",
        "(1/11) Σ_{b=0..10} Z_b, Z_b = mean over tasks of A after b steps",
        "Chaudhry et al. 2019, arXiv 1812.00420, LCA_β",
        "a task not probed at every step 0..10",
    ),
    "nfr": Explained(
        "examples lost since each task was learned",
        f"{FLIPS} / n, mean over earlier tasks",
        "Yan et al. 2021",
        "k < 2; no correctness stored (regressions)",
    ),
    "nfi": Explained(
        "lost examples as a fraction of today's errors",
        f"{FLIPS} / #(wrong now), mean over earlier tasks with an error",
        "Xie et al. 2021",
        "as nfr, or nothing is wrong",
    ),
    "nfr_step": Explained(
        "examples lost from each row to the next",
        f"{FLIPS} / n, mean over earlier tasks and steps",
        "Yan et al. 2021",
        "as nfr",
    ),
    "nfi_step": Explained(
        "lost examples as a fraction of a row's errors",
        f"{FLIPS} / #(wrong now), mean over earlier tasks and steps",
        "Xie et al. 2021",
        "as nfi",
    ),
    "representation_forgetting": Explained(
        "what the encoder itself lost, by linear probes P",
        "(1/(k-1)) Σ_{j<k} (P[j,j] - P[k,j])",
        DAVARI,
        "k < 2; no evaluation.linear_probe",
    ),
    "head_misalignment": Explained(
        "what heads trained anew at the end would win",
        "(1/k) Σ_{j≤k} (P[k,j] - R[k,j])",
        DAVARI,
        "no evaluation.linear_probe",
    ),
    "seen_class_accuracy": Explained(
        "accuracy over all classes seen so far",
        "#(right, rows of tasks 1..k after task k) / #(their rows)",
        "Rebuffi et al. 2017, arXiv 1611.07725",
        "not scenario=shared_head; no task",
    ),
    "average_seen_class_accuracy": Explained(
        "mean of it over the stream (average incremental accuracy)",
        "(1/k) Σ_i A_i, A_i = seen_class_accuracy after task i",
        "Rebuffi et al. 2017, arXiv 1611.07725",
        "as seen_class_accuracy",
    ),
    "ms": Explained(
        "model size efficiency",
        "min(1, (1/k) Σ_i Mem(θ_1)/Mem(θ_i)), bytes",
        f"{DIAZ}, MS",
        "no task",
    ),
    "sss": Explained(
        "samples storage efficiency",
        "1 - min(1, (1/k) Σ_i Mem(M_i)/Mem(D)), bytes",
        f"{DIAZ}, SSS",
        "no task",
    ),
    "ce": Explained(
        "computational efficiency",
        "min(1, (1/k) Σ_i Ops(one pass over Tr_i) ε_i / Ops(spent on Tr_i)), ε_i = epochs",
        f"{DIAZ}, CE",
        "operations were not counted, or a task took none",
    ),
    "routed_average_score": Explained(
        "ACC with inferred tasks",
        "(1/k) Σ_{j≤k} R'[k,j], R' = the score of the inferred tasks' answers",
        "here; ACC as GEM",
        "the task is known; no task",
    ),
    "routed_forgetting": Explained(
        "forgetting of that score",
        "(1/(k-1)) Σ_{j<k} (max_{j≤l<k} R'[l,j] - R'[k,j])",
        "here; Chaudhry et al. 2018, arXiv 1801.10112, eq. 3",
        "the task is known; k < 2",
    ),
    "routing_accuracy": Explained(
        "fraction of texts whose task is inferred",
        "(1/k) Σ_{j≤k} #(texts of j given to j) / n_j, after task k",
        "here",
        "the task is known; no task",
    ),
}
"""The metrics of a run, in the order of results.json; a score counts as better when higher."""
