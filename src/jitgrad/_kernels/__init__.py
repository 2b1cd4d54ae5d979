"""Kernels: arrays in, arrays out. The only package that imports Numba, when the first kernel is needed."""
