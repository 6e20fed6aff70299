import { z } from 'zod'
import { nearestWord } from '../../parameters/kinds.ts'
import { defineTool } from '../define-tool.ts'
import { Mistake } from '../mistake.ts'
import { resolveExact, toFacts, toOf, toPath } from '../requests.ts'
import { cutToSize, type Json, shorten, toPaths, valueAt } from '../table.ts'

/** A record without its nulls: they are listed once, together. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value
  const present = Object.entries(value).filter(([, one]) => one !== null && one !== '')
  return Object.fromEntries(present.map(([name, one]) => [name, withoutNulls(one)]))
}

const SERVICE = ['unavailable', '_id', 'name']

export const profileTool = defineTool({
  name: 'profile',
  title: 'Read a profile',
  description:
    'All data of one token or DAO, in sections. `unavailable` has the reason for each missing section, `unknown` lists the nulls.',
  input: z.strictObject({
    kind: z.enum(['token', 'dao']),
    of: z.string().min(1).max(200).describe('Its name, symbol or id.'),
    sections: z.array(z.string().max(40)).max(12).optional().describe('Only these, such as treasury.'),
  }),
  output: { sections: z.looseObject({}) },
  call: async ({ source, input: { kind, of, sections }, signal }) => {
    const list = `/data/${kind}s`
    const ids = (await resolveExact({ source, signal }, list, [of]))(of)
    const path = toPath(`${list}/profile`, toOf(ids.length === 1 ? ids : [of]))
    const reply = await source.request(path, signal)
    const profile = JSON.parse(reply.text) as Json
    const names = Object.keys(profile).filter((name) => !SERVICE.includes(name))
    const wrong = sections?.filter((section) => !names.includes(section)) ?? []
    if (wrong.length > 0) {
      const near = nearestWord(wrong[0] ?? '', names)
      const hint = near === undefined ? '' : ` Did you mean "${near}"?`
      throw new Mistake(`There is no section ${wrong.join(', ')}.${hint} Sections: ${names.join(', ')}.`)
    }
    const selected = sections ?? names
    const shown = Object.fromEntries(selected.map((name) => [name, profile[name]]))
    const unknown = toPaths([shown]).filter((one) => valueAt(shown, one) === null && !selected.includes(one))
    const { answer } = cutToSize(1, (_, items) => ({
      source: source.base + path,
      ...toFacts(reply),
      id: profile._id,
      name: profile.name,
      sections: withoutNulls(shorten(shown, items)),
      unavailable: (profile.unavailable as readonly Json[]).filter(({ section }) => selected.includes(String(section))),
      unknown,
    }))
    const missing = (answer.unavailable as readonly Json[]).length
    return {
      summary: `${profile.name}: ${selected.length - missing} of ${selected.length} sections are known.`,
      data: answer,
    }
  },
})
