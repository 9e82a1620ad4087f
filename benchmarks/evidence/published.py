"""What Houlsby et al. 2019 (arXiv 1902.00751) print, in points: (full fine-tuning, adapters)."""

LARGE = {
    "cola": (60.5, 56.9),
    "sst2": (94.9, 94.2),
    "mrpc": (89.3, 89.6),
    "stsb": (87.6, 87.3),
    "qqp": (72.1, 71.8),
    "mnli_matched": (86.7, 85.3),
    "mnli_mismatched": (85.9, 84.6),
    "qnli": (91.1, 91.4),
    "rte": (70.1, 68.8),
}
"""Table 1, GLUE's test server, BERT-large, adapters of 64 everywhere."""

PAPER = {
    "newsgroups20": (92.8, 91.7),
    "crowdflower_airline": (83.6, 84.5),
    "crowdflower_corporate_messaging": (92.5, 92.9),
    "crowdflower_disasters": (85.3, 84.1),
    "crowdflower_economic_news": (82.1, 82.5),
    "crowdflower_emotion": (38.4, 38.7),
    "crowdflower_global_warming": (84.2, 82.7),
    "crowdflower_political_audience": (80.9, 79.0),
    "crowdflower_political_bias": (75.2, 75.9),
    "crowdflower_political_message": (38.9, 44.1),
    "crowdflower_primary_emotions": (36.9, 33.9),
    "crowdflower_progressive_opinion": (71.6, 71.7),
    "crowdflower_progressive_stance": (63.8, 60.6),
    "crowdflower_us_economic_performance": (75.3, 77.3),
    "customer_complaints": (55.9, 55.4),
    "news_aggregator": (96.3, 96.2),
    "sms_spam": (99.3, 95.1),
}
"""Table 2, mean test accuracy, BERT-base, adapters of 2 to 64 chosen on validation rows."""

TABLE_2 = {"newsgroups20": (91.1, 92.8, 92.8, 91.7)}
"""All columns of table 2, of the ablations' task: no BERT, full and variable tuning, adapters."""

GLUE = list(LARGE)

ALL = {**LARGE, **PAPER}
"""All 26 tasks, in the order of the stream."""
