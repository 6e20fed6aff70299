import type { TestProject } from 'vitest/node'
import { buildForThisRun } from '../../tools/build.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder with the compiled programs. */
    compiled: string
  }
}

/** Compiles the programs once per run; what tests start as processes is what production starts. */
export default function setup(project: TestProject): () => void {
  const built = buildForThisRun()
  project.provide('compiled', built.folder)
  project.onTestsRerun(built.again)
  return built.remove
}
