"""What `autograd.graph` offers beyond torch: traces, pictures and memory of a graph, and where saved tensors may be kept. Loaded at first use."""
