"""What papers print for these streams, in points: average accuracy after the last task.

Most numbers stand in another paper's table or in public notes on a paper; docs/streams.md says of
each table where it was seen.
"""

T5_LARGE: dict[str, tuple[float, float, float, float, float, float]] = {
    "sequential fine-tuning": (18.9, 24.9, 41.7, 7.4, 7.4, 7.5),
    "one LoRA throughout": (44.6, 32.7, 53.7, 2.3, 0.6, 1.9),
    "replay": (55.2, 56.9, 61.3, 55.0, 54.6, 53.1),
    "LwF": (54.4, 53.1, 49.6, 50.1, 43.1, 47.4),
    "L2P": (60.3, 61.7, 61.1, 57.5, 53.8, 56.9),
    "O-LoRA": (75.4, 75.7, 76.3, 72.3, 64.8, 71.6),
    "Progressive Prompts (task known)": (75.2, 75.0, 75.1, 78.0, 77.7, 77.9),
    "a model a task": (70.0, 70.0, 70.0, 78.1, 78.1, 78.1),
    "all tasks at once": (80.0, 80.0, 80.0, 76.5, 76.5, 76.5),
    "fine-tuning at 1e-4 (MIGU's own run)": (74.4, 75.0, 77.5, 70.6, 69.7, 65.6),
}
"""T5-large, 1,000 rows a class: orders 1 to 3 of ``cl4``, 4 to 6 of ``long15``."""

BERT_BASE_LONG15: dict[str, tuple[float, float, float]] = {
    "fine-tuning": (31.3, 42.4, 41.7),
    "replay": (36.4, 47.0, 49.6),
    "IDBR": (36.8, 47.9, 52.2),
    "a prompt a task": (50.6, 62.4, 67.2),
    "Progressive Prompts": (53.5, 66.9, 69.3),
    "all tasks at once": (56.9, 67.7, 69.9),
}
"""BERT-base on ``long15``, mean of the three orders: 20, 200 and 1,000 rows a class."""

BERT_BASE_CL5: dict[str, float] = {
    "sequential fine-tuning": 18.4,
    "replay": 57.8,
    "MBPA++": 70.6,
    "IDBR": 76.3,
    "Meta-MbPA": 77.3,
    "Progressive Prompts (a head a task)": 77.9,
    "SLM": 79.1,
}
"""BERT-base on ``cl5``, mean of the four orders, 33 classes but where said."""

CLINC150: dict[str, float] = {
    "sequential fine-tuning": 12.3,
    "LAMOL": 43.4,
    "SEQ* (frozen encoder and old heads, cosine)": 84.5,
}
"""CLINC150 in 15 steps, one head, no stored rows, Pythia-410m: accuracy over all classes."""
