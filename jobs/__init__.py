"""What runs on a clock: refresh, guard, publish and scheduler."""
