"""GANs on random walks and on edge lists (Bojchevski et al. 2018; Zheng et al. 2021)."""
