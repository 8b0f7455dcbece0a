import { Button, Group, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { ApiEntry } from '#features/portal/contract/main-apis.ts'
import { apiDocumentQuery, apisQuery, downloadApiDocument } from '../../api/apis.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Answer } from '../../components/answer.tsx'
import { CopyButton } from '../../components/copy-button.tsx'
import { type Fact, Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import { type ApiDocument, type Credential, readApiDocument } from './api-document.ts'
import { OperationList } from './operation-list.tsx'
import { OperationView } from './operation-view.tsx'
import './apis.css'

const route = getRouteApi('/apis/$name')

/** One API. The chosen operation and the search are in the address, so that they can be shared. */
export function ApiPage() {
  const { t } = useTranslation()
  const { name } = route.useParams()
  const json = useQuery(apiDocumentQuery(name))
  const document = useMemo(() => (json.data === undefined ? undefined : readApiDocument(json.data)), [json.data])
  const back = (
    <Button
      variant="default"
      leftSection={<Icon name="back" size={18} />}
      renderRoot={(props) => <Link to="/apis" {...props} />}
    >
      {t('apis.all')}
    </Button>
  )
  return (
    <Page title={document?.title ?? t('page.apis')} actions={back}>
      <Answer query={json} rows={8}>
        {() => document !== undefined && <Document key={name} name={name} document={document} />}
      </Answer>
    </Page>
  )
}

interface DocumentProps {
  readonly name: string
  readonly document: ApiDocument
}

function Document({ name, document }: DocumentProps) {
  const { t } = useTranslation()
  const { operation: wanted, q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const chosen = document.groups.flatMap(({ operations }) => operations).find(({ id }) => id === wanted)
  const search = (next: string): void =>
    void navigate({
      search: { ...(next === '' ? {} : { q: next }), ...(wanted === undefined ? {} : { operation: wanted }) },
      replace: true,
    })
  return (
    <Stack gap="lg" className="api-document" data-chosen={wanted !== undefined}>
      <div className="api-about">
        <About name={name} document={document} />
      </div>
      <div className="api-split">
        <OperationList name={name} groups={document.groups} chosen={wanted} query={q} onSearch={search} />
        <div className="api-chosen">
          {chosen !== undefined ? (
            <OperationView key={chosen.id} name={name} document={document} operation={chosen} query={q} />
          ) : wanted === undefined ? (
            <Text c="dimmed" className="api-hint">
              {t('apis.choose')}
            </Text>
          ) : (
            <Empty icon="code" title={t('apis.unknownOperation')} text={t('apis.unknownOperationText')}>
              <Link className="text-link" to="/apis/$name" params={{ name }}>
                {t('apis.allOperations')}
              </Link>
            </Empty>
          )}
        </div>
      </div>
    </Stack>
  )
}

/** Where the API is, how callers authenticate, and its documents as files. */
function About({ name, document }: DocumentProps) {
  const { t } = useTranslation()
  const apis = useQuery(apisQuery)
  const entry = apis.data?.apis.find((one) => one.name === name)
  const facts: readonly Fact[] = [
    {
      name: t('apis.address'),
      value: (
        <Stack gap={4}>
          {document.servers.map((server) => (
            <Group key={server} gap="xs">
              <code className="api-code">{isolated(server)}</code>
              <CopyButton value={server} label={server} />
            </Group>
          ))}
        </Stack>
      ),
    },
    { name: t('apis.authentication'), value: <Authentication credentials={document.credentials} /> },
    ...(entry === undefined ? [] : [{ name: t('apis.application'), value: entry.application }]),
    { name: t('apis.version'), value: document.version },
    { name: t('apis.documents'), value: <Downloads name={name} files={entry?.documents ?? ['openapi.json']} /> },
  ]
  return <Facts facts={facts} />
}

function Authentication({ credentials }: { readonly credentials: readonly Credential[] | undefined }) {
  const { t } = useTranslation()
  if (credentials === undefined) return t('apis.authUnknown')
  if (credentials.length === 0) return t('apis.authNone')
  return (
    <Stack gap={0}>
      {credentials.map((one) => (
        <span key={one.kind}>
          {one.kind === 'bearer' ? t('apis.authBearer') : t('apis.authSession', { cookie: one.name })}
        </span>
      ))}
    </Stack>
  )
}

const formats = { 'openapi.json': 'OpenAPI 3.1', 'swagger.json': 'Swagger 2.0' } as const

function Downloads({ name, files }: { readonly name: string; readonly files: ApiEntry['documents'] }) {
  const { t } = useTranslation()
  const download = useMutation({ mutationFn: (file: ApiEntry['documents'][number]) => downloadApiDocument(name, file) })
  return (
    <Stack gap="xs">
      <Group gap="xs">
        {files.map((file) => (
          <Button
            key={file}
            size="xs"
            variant="default"
            leftSection={<Icon name="download" size={16} />}
            loading={download.isPending && download.variables === file}
            onClick={() => download.mutate(file)}
          >
            {t('apis.download', { format: formats[file] })}
          </Button>
        ))}
      </Group>
      {download.error !== null && <Failure error={download.error} />}
    </Stack>
  )
}
