import type { ChangePreview } from '#sdk/contract/preview.ts'
import { changesQuery } from '../../api/approvals.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Answer } from '../../components/answer.tsx'
import './change-preview.css'
import { Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { PreviewLine } from './preview-line.tsx'
import { type Submitted, withoutRepetition } from './repetition.ts'

interface PreviewProps {
  readonly approval: string
  readonly version: number
  /** What the page shows as submitted, which the preview does not repeat. */
  readonly submitted: Submitted
}

/** The preview of approving, fetched separately, since targets have to be read for it. */
export function Preview({ approval, version, submitted }: PreviewProps) {
  const { t } = useTranslation()
  const query = useQuery(changesQuery(approval, version))
  if (query.data === null) return null
  return (
    <section aria-labelledby="preview">
      <Title order={3} size="h6" mt="md" mb="xs" id="preview">
        {t('preview.title')}
      </Title>
      <Answer query={query} rows={2}>
        {(changes) => changes && <Steps changes={changes} submitted={submitted} />}
      </Answer>
    </section>
  )
}

function Steps({ changes, submitted }: { readonly changes: ChangePreview; readonly submitted: Submitted }) {
  const { t } = useTranslation()
  const { steps, whole } = changes
  const unknown = steps.findIndex(({ kind }) => kind === 'unforeseen')
  return (
    <>
      {steps.length > 0 && (
        <ol className="preview">
          {steps.map((step, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: they come together and in their order
            <li key={i}>
              <PreviewLine step={withoutRepetition(step, submitted)} />
              {i === unknown && i < steps.length - 1 && (
                <Text size="sm" c="dimmed">
                  {t('preview.loosely')}
                </Text>
              )}
            </li>
          ))}
        </ol>
      )}
      {(steps.length === 0 || !whole) && <Text c="dimmed">{t(closing(steps.length, whole))}</Text>}
    </>
  )
}

function closing(steps: number, whole: boolean): MessageKey {
  if (steps > 0) return 'preview.more'
  return whole ? 'preview.none' : 'preview.failed'
}
