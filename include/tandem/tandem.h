/* SPDX-License-Identifier: MIT
 * room: runtime
 *
 * Everything. Nothing of its own. */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include "tandem/allocator.h"
#include "tandem/backend.h"
#include "tandem/device.h"
#include "tandem/formats.h"
#include "tandem/graph.h"
#include "tandem/log.h"
#include "tandem/ops.h"
#include "tandem/profile.h"
#include "tandem/runtime.h"
#include "tandem/status.h"
#include "tandem/table.h"
#include "tandem/tensor.h"
#include "tandem/tokenizer.h"
#include "tandem/version.h"

#endif
