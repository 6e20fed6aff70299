import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { Listing, listQuery, sortingOf } from '../parts/listing.tsx'
import { GOVERNANCE } from './dao-columns.tsx'
import { ActiveProposals, RecentResults } from './proposals.tsx'

function Daos() {
  const sorting = sortingOf('-votes30d')
  const question = toQuestion('/data/daos/governance/summary', { ...listQuery(), sort: sorting.by })
  const records = useAnswer(question)
  return <Listing {...{ title: 'Snapshot governance by DAO', question, records, sorting, columns: GOVERNANCE }} />
}

/** Open votes of all DAOs by deadline, the newest results, and the activity of each DAO. */
export function GovernancePage() {
  return (
    <div class="column in-order">
      <div class="about">
        <h1>Governance</h1>
        <p class="links">
          <a href="feeds/votes.ics" type="text/calendar" title="Subscribe to this address in a calendar">
            Deadlines as a calendar
          </a>
        </p>
      </div>
      <ActiveProposals />
      <RecentResults />
      <Daos />
    </div>
  )
}
