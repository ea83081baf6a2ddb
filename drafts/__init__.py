"""What is done with a draft once it is written: verdicts, repairs of sentences, the finished text and its record."""
