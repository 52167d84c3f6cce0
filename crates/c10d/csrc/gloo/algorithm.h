// Empty: PyTorch's headers include this file, but need none of its declarations. See context.h.
#pragma once
