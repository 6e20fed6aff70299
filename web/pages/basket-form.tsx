import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../answers.ts'
import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'
import { AddEntity } from '../parts/add-entity.tsx'
import { Choice } from '../parts/choice.tsx'
import { Field } from '../parts/field.tsx'
import { query, withQuery } from '../place.ts'
import {
  type Choosing,
  change,
  choosingOf,
  type Part,
  partsOf,
  REBALANCES,
  rebalanceOf,
  toOf,
  USUAL_TOP,
  WEIGHTS,
  weightsOf,
} from './basket-rule.ts'

/** A share to type. The typed text stays while an arriving report draws the form again. */
function Share({ name, share, onShare }: { name: string; share: string; onShare: (share: string) => void }) {
  const [typed, setTyped] = useState<string | undefined>(undefined)
  return (
    <input
      class="share"
      type="text"
      inputMode="decimal"
      autocomplete="off"
      aria-label={`Share of ${name}`}
      value={typed ?? share}
      onInput={({ currentTarget: { value } }) => setTyped(value)}
      onChange={({ currentTarget: { value } }) => {
        setTyped(undefined)
        onShare(value.trim())
      }}
    />
  )
}

/** The named tokens, each with its share and a button that removes it. */
function Named({
  parts,
  weights,
  nameOf,
}: {
  parts: readonly Part[]
  weights: string
  nameOf: (id: string) => string
}) {
  const select = (next: readonly Part[]) => change({ by: 'named', of: toOf(next, weights) })
  return (
    <ul class="compared" aria-label="Tokens of the basket">
      {parts.map((part) => {
        const name = nameOf(part.token)
        const others = parts.filter(({ token }) => token !== part.token)
        return (
          <li key={part.token}>
            {name}{' '}
            {weights === 'fixed' && (
              <Share
                name={name}
                share={part.share ?? '1'}
                onShare={(share) => select(parts.map((one) => (one === part ? { ...one, share } : one)))}
              />
            )}
            <button type="button" class="plain" aria-label={`Remove ${name}`} onClick={() => select(others)}>
              ×
            </button>
          </li>
        )
      })}
    </ul>
  )
}

interface Options {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly mistake: string | undefined
  readonly hint?: string
  readonly onPick?: (value: string) => void
}

const Select = ({ name, label, value, options, mistake, hint, onPick }: Options) => (
  <Field name={name} label={label} hint={hint} mistake={mistake}>
    {(input) => (
      <select
        {...input}
        value={value}
        onChange={({ currentTarget }) => (onPick ?? ((picked) => change({ [name]: picked })))(currentTarget.value)}
      >
        {options.map(([id, text]) => (
          <option key={id} value={id}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

/** A value that takes effect when it is entered, so that no back-test runs for each letter. */
function Text(props: {
  name: string
  label: string
  mistake: string | undefined
  hint?: string
  usual?: string
  type?: 'date' | 'text'
  toShown?: (value: string) => string
  toSaid?: (value: string) => string
}) {
  const { name, type = 'text', usual, toShown = (value) => value, toSaid = (value) => value } = props
  const attributes: JSX.IntrinsicElements['input'] =
    type === 'date' ? { type } : { type, inputMode: 'decimal', autocomplete: 'off', placeholder: usual ?? '' }
  return (
    <Field name={name} label={props.label} hint={props.hint} mistake={props.mistake}>
      {(input) => (
        <input
          {...input}
          {...attributes}
          value={toShown(query.value.get(name) ?? '')}
          onChange={({ currentTarget }) => change({ [name]: toSaid(currentTarget.value.trim()) })}
        />
      )}
    </Field>
  )
}

/** A percentage as a fraction, and back. A text that is no number stays as it is. */
const toFraction = (text: string) => (text === '' || Number.isNaN(Number(text)) ? text : String(Number(text) / 100))
const toPercents = (text: string) =>
  text === '' || Number.isNaN(Number(text)) ? text : String(Number((Number(text) * 100).toFixed(6)))

/** Where the tokens come from: the largest ones of a category and a chain. */
function Largest({ mistakeOf }: { mistakeOf: (name: string) => string | undefined }) {
  const categories = useAnswer(toQuestion('/data/categories', {})).received?.data ?? []
  const chains = useAnswer(toQuestion('/data/chains', {})).received?.data ?? []
  const toOptions = (records: readonly { slug: string; name: string }[]) =>
    [['', 'all'], ...records.map(({ slug, name }) => [slug, name] as const)] as const
  return (
    <>
      <Text
        name="top"
        label="Number of tokens"
        usual={USUAL_TOP}
        hint="The largest by market cap, at most 100."
        mistake={mistakeOf('top')}
      />
      {(
        [
          ['category', 'Category', categories],
          ['chain', 'Chain', chains],
        ] as const
      ).map(([name, label, records]) => (
        <Select
          key={name}
          name={name}
          label={label}
          value={query.value.get(name) ?? ''}
          options={toOptions(records)}
          mistake={mistakeOf(name)}
        />
      ))}
    </>
  )
}

/** The parameters that the form has a control for. */
const CONTROLS = ['of', 'top', 'category', 'chain', 'weights', 'cap', 'rebalance', 'costBps', 'start', 'end']

/** Whether a failure is about a value of the form, which then shows it. */
export const isOfForm = (failure: Failure | undefined): boolean => CONTROLS.includes(failure?.param ?? '')

/** The form of a basket's rule. All values are in the address. */
export function BasketForm({ failure, nameOf }: { failure: Failure | undefined; nameOf: (id: string) => string }) {
  const [choosing, weights, parts] = [choosingOf(), weightsOf(), partsOf()]
  const mistakeOf = (name: string) => (failure?.param === name ? failure.detail : undefined)
  const pickWeights = (next: string) =>
    change({
      weights: next,
      ...(parts.length > 0 && { of: toOf(parts, next) }),
      ...(next !== 'marketCap' && { cap: undefined }),
    })
  const add = (id: string) => {
    const others = parts.filter(({ token }) => token !== id)
    change({ by: 'named', of: toOf([...others, { token: id, share: undefined }], weights) })
  }
  const usable = Object.entries(WEIGHTS).filter(([id]) => id !== 'fixed' || choosing === 'named')
  return (
    <div class="basket-form">
      <Choice<Choosing>
        name="by"
        label="Tokens of the basket"
        options={[
          { value: 'largest', text: 'Largest tokens' },
          { value: 'named', text: 'Own choice' },
        ]}
        value={choosing}
        clears={['of', 'top', 'category', 'chain', 'trades', 'with', ...(weights === 'fixed' ? ['weights'] : [])]}
      />
      {choosing === 'named' && (
        <>
          <Named parts={parts} weights={weights} nameOf={nameOf} />
          <AddEntity kind="token" onAdd={add} />
          {mistakeOf('of') !== undefined && (
            <p class="down" role="alert">
              {mistakeOf('of')}
            </p>
          )}
        </>
      )}
      <div class="fields">
        {choosing === 'largest' && <Largest mistakeOf={mistakeOf} />}
        <Select
          name="weights"
          label="Weights"
          value={weights}
          options={usable}
          mistake={mistakeOf('weights')}
          onPick={pickWeights}
        />
        {weights === 'marketCap' && (
          <Text
            name="cap"
            label="Largest weight, %"
            usual="none"
            toShown={toPercents}
            toSaid={toFraction}
            mistake={mistakeOf('cap')}
          />
        )}
        <Select
          name="rebalance"
          label="Rebalanced"
          value={rebalanceOf()}
          options={Object.entries(REBALANCES)}
          mistake={mistakeOf('rebalance')}
        />
        <Text name="costBps" label="Cost, basis points" usual="0" mistake={mistakeOf('costBps')} />
        <Text
          name="start"
          label="First day"
          type="date"
          hint="Without it, a year before the end."
          mistake={mistakeOf('start')}
        />
        <Text name="end" label="Until, exclusive" type="date" hint="Without it, today." mistake={mistakeOf('end')} />
      </div>
      <p class="links">
        <a href={withQuery(Object.fromEntries([...query.value.keys()].map((name) => [name, undefined])))}>
          Start again
        </a>
      </p>
    </div>
  )
}
