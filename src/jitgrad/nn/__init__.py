"""Neural networks: modules, their functions, and what fills them with numbers."""

from . import functional, init, modules, parameter, utils
from .modules.activation import (
    ELU,
    GELU,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from .modules.batchnorm import BatchNorm1d
from .modules.container import ModuleDict, ModuleList, Sequential
from .modules.dropout import Dropout
from .modules.flatten import Flatten, Unflatten
from .modules.linear import Identity, Linear
from .modules.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from .modules.module import Module
from .modules.normalization import LayerNorm
from .modules.parameters import ParameterDict, ParameterList
from .modules.sparse import Embedding
from .parameter import Buffer, Parameter

__all__ = [
    "ELU",
    "GELU",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "Buffer",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Unflatten",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
