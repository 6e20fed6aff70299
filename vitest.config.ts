import { defineConfig } from 'vitest/config'

const SHARED = {
  // Modules that are loaded once serve all files of a worker.
  isolate: false,
  // Tests allocate many short-lived objects: a larger young generation needs fewer collections.
  execArgv: ['--max-semi-space-size=64'],
  // A timeout ends a hung test. The limit is far above the time that a test needs on a busy machine.
  testTimeout: 180_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 170_000 } },
}

/** Tests of modules alone: no build, no stores, no page. */
const unit = (name: string, include: string) => ({
  test: { ...SHARED, name, include: [`test/${include}.test.ts`] },
})

/** Tests that use the compiled programs, ClickHouse and Redis, which start once for all projects of a run. */
const withStores = (
  name: string,
  include: string,
  more: { exclude?: string[]; isolate?: boolean; testTimeout?: number } = {},
) => ({
  test: {
    ...SHARED,
    name,
    include: [`test/${include}.test.ts`],
    globalSetup: ['test/support/scratch.ts', 'test/support/stores.ts'],
    setupFiles: ['test/support/run-compiled.ts'],
    ...more,
  },
})

/** Files that trace or measure their whole process, and therefore share it with no other file. */
const ISOLATED = 'integration/{tracing-jobs,tracing-requests,executed-files,api-executed-files}'

export default defineConfig({
  test: {
    reporters: ['default', './test/support/run-report.ts'],
    // One more than two cores: each worker waits a fifth of its time for a store. The system suite waits for programs and has four.
    maxWorkers: 3,
    // In the order of their names: what takes longest comes first.
    projects: [
      withStores('long', 'long/**/*', { testTimeout: 1_800_000 }),
      withStores('occasional', 'occasional/**/*'),
      withStores('faults', 'faults/**/*'),
      withStores('system', 'system/**/*'),
      withStores('integration', '{integration,contract}/**/*', { exclude: [`test/${ISOLATED}.test.ts`] }),
      withStores('isolated', ISOLATED, { isolate: true }),
      unit('unit', 'unit/**/*'),
    ],
  },
})
