"""The baseline without BERT: TF-IDF of word pieces and logistic regression, isolated per task.

It stands where the paper has its no-BERT AutoML (Houlsby et al. 2019, arXiv 1902.00751, section
3.3, Table 2), and is far simpler. The terms are the encoder's own token ids, special ones too,
single and in pairs of neighbours; token types keep the two texts of a pair apart (encoders without
them, as RoBERTa, do not). So tokens beyond ``backbone.max_length`` are cut as for other learners.
Regression tasks take ridge regression. All by scikit-learn, on the CPU, and deterministic.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy import sparse

from stream.config.setting import POSITIVE, at_least, setting
from stream.data.batch import Batch
from stream.data.batching import evaluation_batches
from stream.data.task import Task
from stream.learners._shared.fitted import Fitted
from stream.learners.base import Tags, Tensors

TOKEN_BITS = 24  # a term is one int64: token type, first token + 1 (0 where single), last token
FIT_BATCH_TOKENS = 2**16
NEVER = -1e4  # logit of a class without training rows: finite, of probability 0 in float32


class Occurrences(NamedTuple):
    """Every term of ``rows`` texts: in which text it stands, and which it is, both int64."""

    rows: int
    row: np.ndarray
    term: np.ndarray


@dataclass
class TfIdf(Fitted):
    """Fit logistic regression on TF-IDF.

    Attributes:
        penalty: the strength of the L2 penalty (1 / C in scikit-learn).
        terms: how many of the most frequent word pieces and pairs of them are used.
    """

    penalty: float = setting(0.03, POSITIVE)
    terms: int = setting(50_000, at_least(1))

    tags: ClassVar[Tags] = replace(Fitted.tags, paper="a usual baseline", stores="term weights")

    def fitted(self, task: Task) -> Tensors:
        """Return terms [F], idf [F], coefficients [F, K] and intercept [K]."""
        from sklearn.feature_extraction.text import TfidfTransformer

        train = task.split("train")
        order, found = [], []
        batches = evaluation_batches([(task, train)], self.pad_id, FIT_BATCH_TOKENS)
        for ((_, rows),), batch in batches:
            order.append(rows)
            found.append(occurrences(batch))
        terms, counts = np.unique(np.concatenate([f.term for f in found]), return_counts=True)
        terms = np.sort(terms[np.argsort(-counts, kind="stable")[: self.terms]])
        transformer = TfidfTransformer()
        rows = sparse.vstack([count(f, terms) for f in found]).astype(np.float64)
        features = transformer.fit_transform(rows)
        labels = train.labels[np.concatenate(order)]
        coefficients, intercept = fit_linear(features, labels, task, self.penalty)
        numbers = {"idf": transformer.idf_, "coefficients": coefficients, "intercept": intercept}
        fitted = {name: torch.from_numpy(of.astype(np.float32)) for name, of in numbers.items()}
        return {"terms": torch.from_numpy(terms), **fitted}

    def logits(self, state: Tensors, task: Task, batch: Batch) -> torch.Tensor:
        """Return coefficients times the normalized TF-IDF of each text, plus intercept."""
        from sklearn.preprocessing import normalize

        counts = count(occurrences(batch), state["terms"].numpy())
        features = normalize(counts.multiply(state["idf"].numpy()).tocsr())
        scores = features @ state["coefficients"].numpy() + state["intercept"].numpy()
        return torch.from_numpy(scores)


def occurrences(batch: Batch) -> Occurrences:
    """Return the single tokens and the pairs of neighbours within one text of every row."""
    ids = batch.input_ids.cpu().numpy()
    types = batch.token_type_ids.cpu().numpy() << (2 * TOKEN_BITS)
    mask = batch.attention_mask.cpu().numpy() > 0
    paired = mask[:, 1:] & (types[:, 1:] == types[:, :-1])  # padding stands behind the tokens
    pairs = types[:, 1:] | ((ids[:, :-1] + 1) << TOKEN_BITS) | ids[:, 1:]
    row = np.concatenate([mask.nonzero()[0], paired.nonzero()[0]])
    return Occurrences(len(batch), row, np.concatenate([(types | ids)[mask], pairs[paired]]))


def count(found: Occurrences, terms: np.ndarray) -> sparse.csr_matrix:
    """Return how often each text has each of the sorted ``terms``, float32 [B, F]."""
    column = np.searchsorted(terms, found.term).clip(max=len(terms) - 1)
    known = terms[column] == found.term
    places = found.row[known], column[known]
    ones = np.ones(known.sum(), np.float32)
    return sparse.csr_matrix((ones, places), shape=(found.rows, len(terms)))


def fit_linear(
    features: sparse.csr_matrix, labels: np.ndarray, task: Task, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients [F, K] and intercept [K]; two classes are told apart by the second."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if task.is_regression:
        ridge = Ridge(alpha=penalty).fit(features, labels)
        return ridge.coef_[:, None], np.array([ridge.intercept_])
    _, width = features.get_shape()
    coefficients = np.zeros((width, task.num_outputs))
    intercept = np.full(task.num_outputs, NEVER)
    classes = np.unique(labels)
    intercept[classes] = 0.0
    if len(classes) > 1:
        model = LogisticRegression(C=1 / penalty, max_iter=1000).fit(features, labels)
        told = classes[-len(model.intercept_) :]
        coefficients[:, told], intercept[told] = model.coef_.T, model.intercept_
    return coefficients, intercept
