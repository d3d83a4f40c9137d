"""What predicts from released arrays, and what else only processes them: no private record comes in
here.
"""
