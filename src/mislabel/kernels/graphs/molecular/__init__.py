"""Ready-made kernels of molecules: one walk over their atoms, a second one that sees farther, and a term for their electrons."""
