"""What every study shares: arms, asking, measuring, telling."""
