import { useAnswer } from '../answers.ts'
import { readTimes } from '../format.ts'
import { type Answer, toQuestion } from '../interface.ts'
import { AddEntity } from '../parts/add-entity.tsx'
import { Card } from '../parts/card.tsx'
import { Field } from '../parts/field.tsx'
import { CopyLine } from '../parts/open-as.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Shown } from '../parts/shown.tsx'
import { TimeValue } from '../parts/value.tsx'
import { go, query, withQuery } from '../place.ts'
import {
  type Draft,
  fieldsOf,
  findMistakes,
  type Field as RuleField,
  readField,
  subjectOf,
  toCommand,
  toRule,
  toYaml,
} from './alert-rule.ts'
import '../styles/alerts.css'

const MOST_FIRED = 50

type Fired = Answer<'/data/alerts'>[number]

/** The page of this explorer that the URL of an alert means. */
const toOwnPage = (url: string | null) =>
  /(?:tokens|daos)\/[0-9a-f]{24}(?:\/proposals\/[0-9a-f]{24})?$/.exec(url ?? '')?.[0]

function Title({ of: { title, url } }: { of: Fired }) {
  const page = toOwnPage(url)
  return <span class="text">{page === undefined ? readTimes(title) : <a href={page}>{readTimes(title)}</a>}</span>
}

function FiredAlerts({ rules }: { rules: readonly string[] }) {
  const rule = query.value.get('rule') ?? ''
  const cursor = query.value.get('cursor') ?? ''
  const question = toQuestion('/data/alerts', {
    limit: MOST_FIRED,
    ...(rule === '' ? {} : { rule }),
    ...(cursor === '' ? {} : { cursor }),
  })
  const fired = useAnswer(question)
  const controls = (
    <div class="filters">
      <label>
        Rule
        <select
          value={rule}
          onChange={({ currentTarget }) => go(withQuery({ rule: currentTarget.value, cursor: undefined }))}
        >
          <option value="">all</option>
          {rules.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
    </div>
  )
  return (
    <Card title="Fired alerts" question={question} controls={controls}>
      <Shown of={fired} what="alerts" isEmpty={(data) => data.length === 0} empty="No alert has fired yet.">
        {(data, { next }) => (
          <>
            <RecordTable
              caption="Fired alerts"
              records={data}
              keyOf={({ _id }) => _id}
              columns={[
                {
                  title: 'Alert',
                  isText: true,
                  cell: (one) => (
                    <span class="titled">
                      <Title of={one} />
                      <small class="narrow">{readTimes(one.text)}</small>
                    </span>
                  ),
                },
                { title: 'Fired', cell: ({ firedAt }) => <TimeValue at={firedAt} /> },
                { title: 'Rule', isWide: true, cell: (one) => one.rule },
                { title: 'Details', isWide: true, cell: ({ text }) => <span class="text">{readTimes(text)}</span> },
              ]}
            />
            {next !== undefined && (
              <p class="pages">
                <a href={withQuery({ cursor: next })}>Earlier alerts</a>
              </p>
            )}
          </>
        )}
      </Shown>
      {cursor !== '' && (
        <p class="pages">
          <a href={withQuery({ cursor: undefined })}>Newest alerts</a>
        </p>
      )}
    </Card>
  )
}

/** The fields whose values are in the address. */
const draftOf = (): Draft => Object.fromEntries(query.value)

/** Changes the draft. Typing a letter adds no entry to the browser's history. */
function change(draft: Draft, changes: Draft): void {
  const isOther = subjectOf({ ...draft, ...changes }) !== subjectOf(draft)
  go(withQuery(isOther ? { ...changes, ids: undefined } : changes), { replaces: true })
}

function Input(props: { field: RuleField; draft: Draft; mistake: string | undefined }) {
  const { field, draft, mistake } = props
  const { name, label, options, hint, usual, isList } = field
  const text = draft[name] ?? ''
  const example = readField(field, {}) || usual
  const onInput = ({ currentTarget }: { currentTarget: { value: string } }) =>
    change(draft, { [name]: currentTarget.value })
  return (
    <Field name={name} label={label} hint={hint} mistake={mistake}>
      {(input) => {
        const shared = { ...input, onInput }
        if (options !== undefined)
          return (
            <select {...shared} value={readField(field, draft)}>
              {options.map(([value, shown]) => (
                <option key={value} value={value}>
                  {shown}
                </option>
              ))}
            </select>
          )
        if (isList)
          return (
            <textarea
              {...shared}
              rows={2}
              spellcheck={false}
              value={text}
              placeholder={readField(field, { list: draft.list ?? '' })}
            />
          )
        return (
          <input {...shared} type="text" autocomplete="off" spellcheck={false} value={text} placeholder={example} />
        )
      }}
    </Field>
  )
}

const idsOf = (draft: Draft) => (draft.ids ?? '').split(',').filter((id) => /^[0-9a-f]{24}$/.test(id))

/** The names of the selected tokens or DAOs, in the order of their ids. */
function useNames(kind: 'token' | 'dao', ids: readonly string[]): readonly string[] {
  const selection = { id: [...ids], limit: Math.max(1, ids.length) }
  const tokens = useAnswer(ids.length > 0 && kind === 'token' ? toQuestion('/data/tokens', selection) : undefined)
  const daos = useAnswer(ids.length > 0 && kind === 'dao' ? toQuestion('/data/daos', selection) : undefined)
  const records = (kind === 'token' ? tokens : daos).received?.data ?? []
  return ids.map((id) => records.find(({ _id }) => _id === id)?.name ?? id)
}

/** Selects tokens or DAOs by a search. */
function Selected({ kind, draft, names }: { kind: 'token' | 'dao'; draft: Draft; names: readonly string[] }) {
  const ids = idsOf(draft)
  const select = (next: readonly string[]) => change(draft, { ids: next.join(',') })
  return (
    <>
      <ul class="compared" aria-label="Selected">
        {ids.map((id, at) => (
          <li key={id}>
            {names[at]}{' '}
            <button
              type="button"
              class="plain"
              aria-label={`Remove ${names[at]}`}
              onClick={() => select(ids.filter((one) => one !== id))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <AddEntity kind={kind} onAdd={(id) => select([...ids.filter((one) => one !== id), id])} />
    </>
  )
}

function Category({ draft }: { draft: Draft }) {
  const categories = useAnswer(toQuestion('/data/categories', {})).received?.data ?? []
  return (
    <div class="filters">
      <label>
        Category
        <select
          value={draft.category ?? ''}
          onChange={({ currentTarget }) => change(draft, { category: currentTarget.value })}
        >
          <option value="" disabled>
            choose one
          </option>
          {categories.map(({ slug, name }) => (
            <option key={slug} value={slug}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  )
}

function Result({ draft, names, wrong }: { draft: Draft; names: readonly string[]; wrong: number }) {
  if (wrong > 0)
    return (
      <p class="state" role="status">
        {wrong === 1 ? 'One field has a mistake.' : `${wrong} fields have a mistake.`} The rule is written when it is
        corrected.
      </p>
    )
  const rule = toRule(draft)
  return (
    <>
      <CopyLine text={toYaml(rule, names)} usual="Copy YAML" isBlock />
      <p class="note">
        Add it to <code>rules</code> in the file of <code>ALERTS_FILE</code>, then <code>npm run alerts -- check</code>.
        This command does the same:
      </p>
      <CopyLine text={toCommand(rule)} usual="Copy command" />
    </>
  )
}

const GROUPS = [
  ['what', 'What'],
  ['who', 'Who'],
  ['where', 'Where'],
  ['often', 'How often, and the name'],
] as const

/** A form that writes a rule. Everything entered is in the address. */
function Builder() {
  const draft = draftOf()
  const mistakes = findMistakes(draft)
  const fields = fieldsOf(draft)
  const subject = subjectOf(draft)
  const isSelected = subject !== 'none' && draft.who === 'ids'
  const names = useNames(subject === 'none' ? 'token' : subject, isSelected ? idsOf(draft) : [])
  return (
    <Card title="Build a rule">
      <p class="note">Rules are in a file of the operator, so nothing is sent from here. The result is text to copy.</p>
      <div class="builder">
        {GROUPS.map(
          ([group, title]) =>
            fields[group].length > 0 && (
              <fieldset key={group} class={group === 'what' || group === 'often' ? 'wide' : undefined}>
                <legend>{title}</legend>
                <div class="fields">
                  {fields[group].map((field) => (
                    <Input key={field.name} field={field} draft={draft} mistake={mistakes.get(field.name)} />
                  ))}
                </div>
                {group === 'who' && isSelected && <Selected kind={subject} draft={draft} names={names} />}
                {group === 'who' && draft.who === 'category' && <Category draft={draft} />}
              </fieldset>
            ),
        )}
        <section class="built" aria-label="The rule">
          <Result draft={draft} names={names} wrong={mistakes.size} />
        </section>
      </div>
    </Card>
  )
}

/** The alerts that fired, the rules of the operator, and a form that writes further rules. */
export function AlertsPage() {
  const question = toQuestion('/data/alerts/rules', {})
  const rules = useAnswer(question)
  return (
    <>
      <h1>Alerts</h1>
      <FiredAlerts rules={rules.received?.data.map(({ rule }) => rule) ?? []} />
      <Card title="Rules" question={question}>
        <Shown of={rules} what="rules" isEmpty={(data) => data.length === 0} empty="The operator has set no rules.">
          {(data) => (
            <RecordTable
              caption="Rules"
              records={data}
              keyOf={({ rule }) => rule}
              columns={[
                { title: 'Rule', cell: ({ rule }) => rule },
                {
                  title: 'Description',
                  isText: true,
                  cell: ({ description }) => <span class="text">{description}</span>,
                },
                { title: 'Kind', cell: ({ kind }) => kind },
                { title: 'State', cell: ({ state }) => state },
                {
                  title: 'Last fired',
                  cell: ({ lastFiredAt }) => (lastFiredAt === null ? 'never' : <TimeValue at={lastFiredAt} />),
                },
                {
                  title: 'Feed',
                  cell: ({ rule }) => (
                    <a href={`feeds/${rule}.atom`} aria-label={`Atom feed of ${rule}`}>
                      Atom
                    </a>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Card>
      <Builder />
    </>
  )
}
