import type { ComponentChildren } from 'preact'

/** The attributes of a field's input: its name for the label, and the fault of its value. */
interface InputAttributes {
  readonly id: string
  readonly 'aria-invalid'?: true
  readonly 'aria-describedby'?: string
}

/** A labelled field of a form, with a hint, or the fault of its value in place of the hint. */
export function Field(props: {
  name: string
  label: string
  hint?: string | undefined
  mistake: string | undefined
  children: (input: InputAttributes) => ComponentChildren
}) {
  const { name, label, hint, mistake } = props
  const text = mistake ?? hint
  const input = {
    id: `field-${name}`,
    ...(mistake === undefined ? {} : { 'aria-invalid': true as const }),
    ...(text === undefined ? {} : { 'aria-describedby': `about-${name}` }),
  }
  return (
    <div class="field">
      <label for={input.id}>{label}</label>
      {props.children(input)}
      {text !== undefined && (
        <small id={`about-${name}`} class={mistake === undefined ? undefined : 'down'}>
          {text}
        </small>
      )}
    </div>
  )
}
