"""What the summaries of a run are worth: a judge is asked (`asking`), means and differences are counted (`results`), and told (`telling`)."""
