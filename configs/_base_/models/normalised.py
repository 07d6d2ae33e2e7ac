# The Visual Transformer that trains best of those tried (docs/training.md): the equations with normalised steps.
# Adam's steps have the same size in every entry, which adds up in matrices as wide as the tokens; here an optimizer
# moves the token-side matrices 0.03 times as far, and all else takes four times the learning rate. The same parameters
# and multiply-adds as without.
normalised = dict(step=0.03)
normalised_sgd = dict(step=0.3)  # SGD moves a matrix by the square
