import { alerts } from './alerts.ts'
import { backfill } from './backfill.ts'
import { baskets } from './baskets.ts'
import { clients } from './clients.ts'
import type { Benchmark } from './define-benchmark.ts'
import { delegates } from './delegates.ts'
import { dexData } from './dex-data.ts'
import { durability } from './durability.ts'
import { flows } from './flows.ts'
import { governance } from './governance.ts'
import { history } from './history.ts'
import { overload } from './overload.ts'
import { page } from './page.ts'
import { plain } from './plain.ts'
import { publication } from './publication.ts'
import { rawAnswers } from './raw-answers.ts'
import { replay } from './replay.ts'
import { scale } from './scale.ts'
import { sentiment } from './sentiment.ts'
import { server } from './server.ts'
import { serving } from './serving.ts'
import { slots } from './slots.ts'
import { storage } from './storage.ts'

/** Every benchmark, in the order of its run and of the page. */
export const benchmarks = [
  server,
  serving,
  clients,
  history,
  overload,
  plain,
  storage,
  publication,
  durability,
  scale,
  backfill,
  slots,
  rawAnswers,
  replay,
  dexData,
  delegates,
  governance,
  flows,
  baskets,
  sentiment,
  alerts,
  page,
] as const satisfies readonly Benchmark[]
