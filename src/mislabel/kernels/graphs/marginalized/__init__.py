"""The marginalized graph kernel: its definition, its derivatives, and how both are computed."""
