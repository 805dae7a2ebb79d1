"""Wang and Wu, 2013: joint degrees (dK-2)."""
