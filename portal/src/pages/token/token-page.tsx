import { Paper, Stack, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Fragment } from 'react'
import type { TokenConfig, TokenUser } from '#features/portal/contract/token.ts'
import { renewToken, tokenConfigQuery, tokenQuery } from '../../api/token.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { useSay } from '../../components/notices.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, useFailureText } from '../../components/states.tsx'
import { claimText } from './claim-text.ts'
import { TokenLife } from './token-life.tsx'
import { tokenParts } from './token-parts.ts'
import { TokenValue } from './token-value.tsx'

/** The user's tokens, and how to use them. */
export function TokenPage() {
  const { t } = useTranslation()
  const config = useQuery(tokenConfigQuery)
  const user = useQuery(tokenQuery)
  const page = config.data?.frontPage
  return (
    <Page title={page?.title || t('page.token')} {...(page === undefined ? {} : { intro: page.text })}>
      <Answer query={config}>
        {(known) => <Answer query={user}>{(shown) => <Tokens config={known} user={shown} />}</Answer>}
      </Answer>
    </Page>
  )
}

function Tokens({ config, user }: { readonly config: TokenConfig; readonly user: TokenUser }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const failureText = useFailureText()
  const renew = useMutation({
    mutationFn: renewToken,
    onSuccess: (renewed) => {
      client.setQueryData(tokenQuery.queryKey, renewed)
      say(t('token.renewed'))
    },
    onError: (error) => say(failureText(error), 'bad'),
  })
  const parts = tokenParts(user.token)
  if (parts.length === 0) return <Empty icon="key" title={t('token.none')} text={t('token.noneText')} />
  return (
    <Stack>
      {user.expires !== undefined && (
        <TokenLife
          user={user}
          expires={user.expires}
          logoutURL={config.logoutURL}
          isRenewing={renew.isPending}
          onRenew={() => renew.mutate()}
          onEnd={() => void client.invalidateQueries({ queryKey: tokenQuery.queryKey })}
        />
      )}
      {parts.map((part) => (
        <TokenValue key={part.name} part={part} withQr={part.name === config.qrCodeAttribute} />
      ))}
      {user.claims !== undefined && <Claims claims={user.claims} />}
    </Stack>
  )
}

function Claims({ claims }: { readonly claims: NonNullable<TokenUser['claims']> }) {
  const { t, dateTime } = useTranslation()
  return (
    <Paper withBorder p="md" component="section" aria-label={t('token.claims')}>
      <Title order={2} size="h5" mb="xs">
        {t('token.claims')}
      </Title>
      <dl className="facts">
        {Object.entries(claims).map(([name, value]) => (
          <Fragment key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd>{claimText(name, value, dateTime)}</dd>
          </Fragment>
        ))}
      </dl>
    </Paper>
  )
}
