/* SPDX-License-Identifier: MIT
 * room: runtime
 *
 * Includes all headers of libtandem. Sessions of models are a separate library with tandem/llama.h.
 *
 * Rules for all functions: those that can fail return an enum tandem_status and leave their results
 * untouched on failure; free and close take NULL; strings are UTF-8 and end with a zero byte;
 * nothing is printed, and no function ends the program. An object may be moved from one thread to
 * another between two calls. */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include "tandem/allocator.h"
#include "tandem/backend.h"
#include "tandem/device.h"
#include "tandem/files.h"
#include "tandem/formats.h"
#include "tandem/graph.h"
#include "tandem/log.h"
#include "tandem/mapped.h"
#include "tandem/nets.h"
#include "tandem/onnx_nets.h"
#include "tandem/ops.h"
#include "tandem/profile.h"
#include "tandem/runtime.h"
#include "tandem/sample.h"
#include "tandem/status.h"
#include "tandem/table.h"
#include "tandem/tensor.h"
#include "tandem/tokenizer.h"
#include "tandem/version.h"

#endif
