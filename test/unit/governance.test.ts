import { expect, it } from 'vitest'
import { parseConfig } from '../../shared/config/config.ts'
import type { GovernanceRow } from '../../shared/datasets/governance.ts'
import { DataError } from '../../shared/errors.ts'
import type { HttpRequest } from '../../workers/http/request.ts'
import type { ProviderContext } from '../../workers/job/define-job.ts'
import governance from '../../workers/jobs/governance.ts'
import { toTestDao } from '../samples.ts'
import { toRun } from '../support/run.ts'
import { silent } from '../support/silent.ts'

const CREATED = Date.parse('2024-01-01T00:00:00Z') / 1000
const VOTER = `0x${'a'.repeat(40)}`

/** A hub whose spaces have one proposal and one vote each; what is asked of a space in `down` fails. */
function openHub(down: ReadonlySet<string>) {
  const json = async ({ body }: HttpRequest) => {
    const { query, variables } = body as { query: string; variables: { space: string } }
    if (down.has(variables.space)) throw new DataError('provider_unavailable', 'snapshot: status 503')
    const of = { id: `0x${variables.space}`, created: CREATED }
    if (query.includes('proposals(')) return { data: { proposals: [{ ...of, author: VOTER }] } }
    return { data: { votes: [{ ...of, voter: VOTER, proposal: { id: of.id } }] } }
  }
  const context = { config: parseConfig({}), log: silent, http: { open: () => ({ json }) } }
  const [collector] = governance.connect(context as unknown as ProviderContext)
  return collector ?? expect.unreachable('a provider')
}

it('keeps what came of a space together with where it goes on, when another space of the DAO fails', async () => {
  const dao = { ...toTestDao(1, null), snapshotSpace: 'new.eth', formerSnapshotSpaces: ['old.eth'] }
  const cursors = new Map<string, string>()
  const state = {
    get: async (name: string) => cursors.get(name),
    set: (name: string, value: string) => void cursors.set(name, value),
    save: async () => {},
  }
  const read = async (down: readonly string[]) => {
    const told = toRun({ entities: [dao], state, slot: CREATED * 1000 + 3_600_000 })
    const rows = (await openHub(new Set(down)).collect(told.run)) as GovernanceRow[]
    return { ...told, rows: rows.map(({ space, kind }) => `${space} ${kind}`) }
  }

  const first = await read(['old.eth'])
  expect([...cursors.keys()]).toEqual(['new.eth'])
  expect(first.rows).toEqual(['new.eth proposal', 'new.eth vote'])
  // It is not counted as read to its end.
  expect([[...first.refused.keys()], first.read]).toEqual([[dao.key], []])

  const second = await read([])
  expect(second.rows).toEqual(expect.arrayContaining(['old.eth vote', 'new.eth reading', 'old.eth reading']))
  expect([second.refused.size, second.read]).toEqual([0, [dao.key]])
})
