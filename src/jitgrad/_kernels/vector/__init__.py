"""Branch-free scalar functions as LLVM instructions; see README.md. `vector_math` exports them to kernels."""
