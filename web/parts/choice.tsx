import { go, query, withQuery } from '../place.ts'

/** A choice between a few options, stored in the page's address. */
export function Choice<T extends string>(props: {
  name: string
  label: string
  options: readonly { readonly value: T; readonly text: string; readonly isOff?: boolean }[]
  value: T
  /** Other parameters of the address that do not fit another choice. */
  clears?: readonly string[]
}) {
  const cleared = Object.fromEntries((props.clears ?? []).map((name) => [name, undefined]))
  return (
    <fieldset class="choice">
      <legend class="hidden">{props.label}</legend>
      {props.options.map(({ value, text, isOff }) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === props.value}
          disabled={isOff === true}
          onClick={() => go(withQuery({ ...cleared, [props.name]: value }))}
        >
          {text}
        </button>
      ))}
    </fieldset>
  )
}

/** The option in the address, or the default. */
export function chosen<T extends string>(name: string, options: readonly T[], otherwise: T): T {
  const said = query.value.get(name)
  return options.find((option) => option === said) ?? otherwise
}
