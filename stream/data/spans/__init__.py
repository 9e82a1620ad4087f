"""Extractive question answering: `tokens` finds an answer's tokens, `answers` judges texts."""
