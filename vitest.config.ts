import { defineConfig } from 'vitest/config'

const SHARED = {
  setupFiles: ['test/support/run-compiled.ts'],
  // What is loaded once serves all files of a worker.
  isolate: false,
  // Tests make much that is soon garbage; with room for it a collection comes less often.
  execArgv: ['--max-semi-space-size=64'],
  // What a test waits for happens; how soon is for a busy machine to say.
  testTimeout: 180_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 170_000 } },
}

const project = (name: string, include: string, more: { exclude?: string[]; isolate?: boolean } = {}) => ({
  test: { ...SHARED, name, include: [`test/${include}.test.ts`], ...more },
})

/** These trace their whole process, once and for all. */
const TRACED = 'integration/tracing-{jobs,requests}'

export default defineConfig({
  test: {
    // Not a project's own: one folder, one build and one set of stores serve them all.
    globalSetup: ['test/support/scratch.ts', 'test/support/compile.ts', 'test/support/stores.ts'],
    // One more than two cores: each waits a fifth of its time for a store. The system's tests wait for programs and have four.
    maxWorkers: 3,
    // In the order of their names: what takes longest comes first.
    projects: [
      project('faults', 'faults/**/*'),
      project('system', 'system/**/*'),
      project('integration', '{integration,contract}/**/*', { exclude: [`test/${TRACED}.test.ts`] }),
      project('traced', TRACED, { isolate: true }),
      project('unit', 'unit/**/*'),
    ],
  },
})
