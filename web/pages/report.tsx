import { useState } from 'preact/hooks'
import { useAnswer } from '../answers.ts'
import { toUtc } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { isDemo } from '../mode.ts'
import { useMargins } from '../parts/margins.ts'
import { toAbsolute } from '../place.ts'
import { TwitterFollowers } from './community.tsx'
import { FeesHistory } from './fees.tsx'
import { GovernanceSummary } from './governance.tsx'
import { PriceChart } from './price-chart.tsx'
import { Proposals } from './proposals.tsx'
import { TreasuryAssets, TreasuryHistory } from './treasury.tsx'
import { FlowHistory, LargestPayments, Runway } from './treasury-flows.tsx'
import { Voters } from './voters.tsx'

type Dao = Answer<'/data/daos'>[number]

/** The numbers of rows that fit on three sheets of A4. */
const [MOST_ASSETS, MOST_PAYMENTS, MOST_PROPOSALS, MOST_VOTERS] = [10, 10, 10, 10]

/** A DAO on at most three printed pages: money on the first, transfers on the second, votes on the last. */
export function Report({ dao: { _id: id, name, token, snapshotName } }: { dao: Dao }) {
  // The time of the report is the time at which it was opened.
  const [time] = useState(() => toUtc(new Date()))
  const source = toAbsolute(`daos/${id}`)
  useMargins(isDemo ? `${source} (demo, all numbers are simulated)` : source, time)
  const chains = new Map(
    useAnswer(toQuestion('/data/chains', {})).received?.data.map(({ _id, name: chain }) => [_id, chain]),
  )
  const tokens = useAnswer(token === null ? undefined : toQuestion('/data/tokens', { id: [token._id] }))
  const newest = tokens.received?.data[0]?.financialData
  return (
    <div class="report column">
      <p class="links">
        <span>
          Report of {time}. Source: {source}
        </span>
        <button type="button" onClick={() => print()}>
          Print or save as PDF
        </button>
      </p>
      <div class="grid">
        {token !== null && <PriceChart id={token._id} name={token.name} dao={id} newest={newest} isLow />}
        <TreasuryHistory id={id} name={name} />
        <FeesHistory id={id} name={name} />
        <TwitterFollowers id={id} name={name} />
      </div>
      <TreasuryAssets id={id} chains={chains} most={MOST_ASSETS} />
      <Runway id={id} />
      <FlowHistory id={id} name={name} />
      <LargestPayments id={id} most={MOST_PAYMENTS} />
      <div class="column next-page">
        <GovernanceSummary id={id} space={snapshotName} />
        <Proposals id={id} limit={MOST_PROPOSALS} />
        <Voters id={id} most={MOST_VOTERS} />
      </div>
    </div>
  )
}
