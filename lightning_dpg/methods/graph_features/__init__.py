"""Methods that release features of each graph of a set, and kernels between the graphs."""
