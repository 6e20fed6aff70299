import { telegramMembers } from '../../shared/datasets/telegram.ts'
import { defineJob } from '../job/define-job.ts'
import { requestMembers } from '../providers/requests.ts'
import { telegramBot } from '../providers/telegram/bot.ts'
import { telegram } from '../providers/telegram/members.ts'

/** Members of every live DAO's Telegram group or channel. The Bot API has totals if the page has none. */
export default defineJob({
  name: 'telegram',
  cadence: '1d',
  dataset: telegramMembers,
  providers: [telegram, telegramBot],
  entities: telegramMembers.entities,
  run: requestMembers,
})
