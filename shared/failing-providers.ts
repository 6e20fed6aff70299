import { z } from 'zod'

/** The name under which a dataset's job remembers which of its providers fail. */
export const FAILING_PROVIDERS = 'failing providers'

const remembered = z.object({ providers: z.array(z.string()).min(1), since: z.iso.datetime() })

/** The providers that did not answer in a dataset's newest slot, and from which slot on. */
export type FailingProviders = z.infer<typeof remembered>

/** What is remembered, as `toFailingText` wrote it; undefined where none fails. */
export function readFailingText(text: string | undefined): FailingProviders | undefined {
  return text === undefined || text === '' ? undefined : remembered.parse(JSON.parse(text))
}

export function toFailingText(failing: FailingProviders | undefined): string {
  return failing === undefined ? '' : JSON.stringify(failing)
}
