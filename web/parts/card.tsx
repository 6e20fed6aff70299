import type { ComponentChildren } from 'preact'
import type { ReceivedAnswer } from '../answers.ts'
import type { Question } from '../interface.ts'
import { isEmbed } from '../place.ts'
import { EmbedAs, type Embedding, OpenAs } from './open-as.tsx'
import { DataTime } from './shown.tsx'

/** A part of a page with a title, the time of its data and a link to its request. */
export function Card(props: {
  title: string
  question?: Question | undefined
  facts?: ReceivedAnswer<unknown>['facts'] | undefined
  hasTables?: boolean
  embedding?: Embedding | undefined
  controls?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <section class="card" aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {'facts' in props && <DataTime facts={props.facts} />}
        {props.question !== undefined && (
          <OpenAs question={props.question} name={props.title} hasTables={props.hasTables ?? true} />
        )}
        {props.embedding !== undefined && !isEmbed && <EmbedAs name={props.title} of={props.embedding} />}
      </header>
      {props.controls}
      {props.children}
    </section>
  )
}

export function Stats({ children }: { children: ComponentChildren }) {
  return <dl class="stats">{children}</dl>
}

/** A labelled number. While it is loading, its place is kept. */
export function Stat(props: { name: string; isLoading?: boolean; children: ComponentChildren }) {
  const { name, isLoading = false, children } = props
  return (
    <div>
      <dt>{name}</dt>
      <dd>{isLoading ? '…' : children}</dd>
    </div>
  )
}
