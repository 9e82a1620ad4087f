"""Memory of a GPU that other programs, and what this one does next, can use again."""

import gc

import torch


def give_gpu_memory_back() -> None:
    """Give back what nothing in this process uses any more.

    Models and graphs that refer to each other are in memory until they are collected.
    """
    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()
