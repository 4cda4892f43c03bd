"""What the training side says of a text: scores of other readers, and what the text's words make likely; shown to a judge as evidence."""
