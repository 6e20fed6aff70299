import type { MembersRow } from '../../shared/datasets/members.ts'
import { DataError } from '../../shared/errors.ts'
import type { Dao } from '../../shared/registry/entities.ts'
import type { Candidate, Run } from '../job/define-job.ts'
import { toIso } from './answer.ts'
import { askEach } from './ask-each.ts'
import type { MembersSource } from './contracts/members.ts'

/** Queries a provider for the members of each community. A community without a number is logged and has no row. */
export async function askForMembers({
  provider,
  entities,
  slot,
  signal,
  ...run
}: Run<MembersSource, Dao>): Promise<Candidate<MembersRow>[]> {
  const askFor = async (dao: Dao): Promise<Candidate<MembersRow>> => {
    const members = await provider.fetchMembers(dao, signal)
    if (typeof members !== 'string') return { dao: dao.key, observed_at: toIso(slot), ...members }
    throw new DataError('provider_unknown', members)
  }
  return askEach(entities, askFor, { ...run, concurrency: provider.concurrency, whole: run.peers.own })
}
