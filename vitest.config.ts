import { defineConfig } from 'vitest/config'

/** Waits end when what they wait for happens; how long that takes is for a busy machine to say. */
const PATIENT = { testTimeout: 180_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } }

export default defineConfig({
  test: {
    // Files wait for their stores and processes as much as they compute, so two share even a single core well.
    maxWorkers: 2,
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'] } },
      {
        test: {
          name: 'integration',
          include: ['test/{integration,contract,faults}/**/*.test.ts'],
          globalSetup: ['test/support/stores.ts'],
          ...PATIENT,
        },
      },
    ],
  },
})
