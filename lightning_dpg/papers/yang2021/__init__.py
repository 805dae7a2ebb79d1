"""Yang et al., 2021: DPGVAE and DPGGAN, a VAE-GAN, with GVAE, GGAN and GraphRNN."""
