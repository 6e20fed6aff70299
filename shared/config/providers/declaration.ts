import { z } from 'zod'
import { integer } from '../numbers.ts'

/**
 * All that an operator sets, reads and pays for a provider. `npx vitest run test/unit/provider-documents.test.ts`
 * compares `.env.example`, docs/settings.md and docs/going-live.md with the declarations; `RECORD_PROVIDERS=1` writes
 * them. The code of a provider is in `workers/providers/`. The declaration is not there, because every process parses
 * the settings, and so reports a wrong one before it starts.
 */
export interface ProviderDeclaration<Shape extends z.core.$ZodLooseShape, Configs extends object> {
  /** Name in documents. */
  readonly title: string
  /** The collected data, and the first facts for an operator: the beginning of its section in `.env.example`. */
  readonly about: string
  /** Settings in the order of the documents. `meta` has their documentation; hosts, keys and rates need none. */
  readonly settings: Shape
  /** The parsed settings in `config.providers`. Hosts with separate limits have separate members. */
  toConfig(settings: z.output<z.ZodObject<Shape>>, limits: AnswerLimits): Configs
  /** The values with which `npm run providers` sends its small requests, if those of the operator do not fit. */
  readonly check?: { readonly [Name in keyof Configs]?: Partial<Configs[Name]> }
  /** Price of a request, for `npm run providers`. */
  readonly cost: string
  /** Its data, by the setting that grants access to it. */
  readonly data: readonly { readonly data: string; readonly key?: keyof Shape & string; readonly withoutKey?: string }[]
  /** Requests or money of one day with this registry, and the plan that allows them. */
  readonly days: readonly { readonly of?: string; readonly day: string; readonly plan: string }[]
}

/** Limits of one answer of any provider. */
export interface AnswerLimits {
  readonly timeoutMs: number
  readonly maxBytes: number
}

export const text = z.string().trim().min(1)
export const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })
export const count = integer(1)

export const declareProvider = <Shape extends z.core.$ZodLooseShape, Configs extends object>(
  declaration: ProviderDeclaration<Shape, Configs>,
): ProviderDeclaration<Shape, Configs> => declaration
