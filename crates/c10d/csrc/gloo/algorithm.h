// See context.h: included by name, nothing of it is used.
#pragma once
