import { z } from 'zod'

/** The name under which a dataset's job remembers which of its providers fail. */
export const FAILING_PROVIDERS = 'failing providers'

const remembered = z.record(z.string(), z.object({ since: z.iso.datetime(), reason: z.string() }))

/** The providers that did not answer in a dataset's newest slot: the slot from which on each failed, and why at last. */
export type FailingProviders = z.infer<typeof remembered>

/** What is remembered, as `toFailingText` wrote it; empty before anything was. */
export function readFailingText(text: string | undefined): FailingProviders {
  return text === undefined ? {} : remembered.parse(JSON.parse(text))
}

export const toFailingText = (failing: FailingProviders): string => JSON.stringify(failing)
