import { discordMembers } from '../../shared/datasets/discord.ts'
import { defineJob } from '../job/define-job.ts'
import { discord } from '../providers/discord/members.ts'
import { requestMembers } from '../providers/requests.ts'

/** Members of every live DAO's Discord server, by its invite. */
export default defineJob({
  name: 'discord',
  cadence: '1d',
  dataset: discordMembers,
  providers: [discord],
  entities: discordMembers.entities,
  run: requestMembers,
})
