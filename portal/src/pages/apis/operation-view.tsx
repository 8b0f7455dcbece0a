import { Group, Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useRef } from 'react'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import type { ApiDocument, ApiResponse, Content, Operation, Parameter } from './api-document.ts'
import { commandVariables, curlCommand } from './curl-command.ts'
import { schemaExample } from './schema-example.ts'
import { schemaTree } from './schema-tree.ts'
import { SchemaView } from './schema-view.tsx'

interface OperationViewProps {
  readonly name: string
  readonly document: ApiDocument
  readonly operation: Operation
  readonly query: string
}

/** One operation, with everything that a caller needs. Its heading gets the focus, unless it is the first page. */
export function OperationView({ name, document, operation, query }: OperationViewProps) {
  const { t } = useTranslation()
  const { id, method, path, summary, description, parameters, body, responses } = operation
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus({ preventScroll: window.scrollY === 0 }), [])
  const [credential] = document.credentials ?? []
  const variables = commandVariables(operation)
  const command = useMemo(() => curlCommand(document, operation), [document, operation])
  return (
    <Stack gap="lg">
      <Link className="text-link api-back" to="/apis/$name" params={{ name }} search={query === '' ? {} : { q: query }}>
        {t('apis.allOperations')}
      </Link>
      <div>
        <Title order={2} size="h3" ref={heading} tabIndex={-1} className="page-title" lang="en">
          {isolated(summary || id)}
        </Title>
        <p className="api-call">
          <b>{method}</b> {isolated(path)}
        </p>
        {description !== '' && <Text lang="en">{isolated(description)}</Text>}
      </div>
      {parameters.length > 0 && (
        <Part title={t('apis.parameters')}>
          <Parameters parameters={parameters} document={document} />
        </Part>
      )}
      {body !== undefined && (
        <Part title={t('apis.body')}>
          <ContentView content={body} document={document} label={t('apis.exampleOf', { what: t('apis.body') })} />
        </Part>
      )}
      <Part title={t('apis.responses')}>
        {responses.map((response) => (
          <Response key={response.status} response={response} document={document} />
        ))}
      </Part>
      <Part title={t('apis.command')} action={<CopyButton value={command} label={t('apis.command')} />}>
        <Text size="sm" c="dimmed">
          {credential?.kind === 'cookie' && t('apis.commandSession', { cookie: credential.name })}
          {credential?.kind === 'bearer' && t('apis.commandToken')}{' '}
          {variables.length > 0 && t('apis.commandVariables', { names: variables.join(', ') })}
        </Text>
        <CodeBlock label={t('apis.command')} text={command} />
      </Part>
    </Stack>
  )
}

interface PartProps {
  readonly title: string
  readonly action?: ReactNode
  readonly children: ReactNode
}

function Part({ title, action, children }: PartProps) {
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={3} size="h5">
          {title}
        </Title>
        {action}
      </Group>
      {children}
    </Stack>
  )
}

interface ParametersProps {
  readonly parameters: readonly Parameter[]
  readonly document: ApiDocument
}

/** As members of a schema, which look the same. */
function Parameters({ parameters, document }: ParametersProps) {
  const members = parameters.map(({ name, place, required, description, schema }) => {
    const node = schemaTree(schema, document.schemas)
    const shown = { ...node, description: description || node.description, limits: [`in: ${place}`, ...node.limits] }
    return { name, kind: 'property' as const, required, node: shown }
  })
  return <SchemaView node={{ type: '', description: '', limits: [], members, isCut: false }} />
}

function Response({ response, document }: { readonly response: ApiResponse; readonly document: ApiDocument }) {
  const { t } = useTranslation()
  const { status, description, content } = response
  const shown = status === 'default' ? t('apis.otherStatus') : status
  const summary = (
    <>
      <b className="api-status">{shown}</b> <span lang="en">{isolated(description)}</span>
    </>
  )
  if (content === undefined) return <p className="api-response">{summary}</p>
  return (
    <details className="api-response" open={status.startsWith('2')}>
      <summary>{summary}</summary>
      <ContentView content={content} document={document} label={t('apis.exampleOf', { what: shown })} />
    </details>
  )
}

interface ContentViewProps {
  readonly content: Content
  readonly document: ApiDocument
  readonly label: string
}

function ContentView({ content: { type, schema }, document, label }: ContentViewProps) {
  const { t } = useTranslation()
  const node = useMemo(() => schemaTree(schema, document.schemas), [schema, document])
  const example = useMemo(() => {
    const value = schema === undefined ? undefined : schemaExample(schema, document.schemas)
    return value === undefined ? undefined : JSON.stringify(value, null, 2)
  }, [schema, document])
  return (
    <Stack gap="xs" mt="xs">
      <Text size="sm">
        <code className="api-code">{isolated(type)}</code>
        {schema !== undefined && <span className="api-type"> {isolated(node.type)}</span>}
      </Text>
      <SchemaView node={node} />
      {example !== undefined && type.includes('json') && (
        <details>
          <summary>{t('apis.example')}</summary>
          <CodeBlock label={label} text={example} />
        </details>
      )}
    </Stack>
  )
}

/** Long code scrolls, also by keyboard. */
function CodeBlock({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="value api-block" tabIndex={0} aria-label={label}>
      {isolated(text)}
    </section>
  )
}
