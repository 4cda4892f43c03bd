"""The model that is trained: its architecture, adapters, quantization and kernels."""
