"""Files of molecules, one module per format with its reader and its writer side by side."""
