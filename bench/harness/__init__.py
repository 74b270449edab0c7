"""What all experiments share: contestants, clocks, result files, plots and the generated report."""
