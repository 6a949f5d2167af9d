//! Tokens of accounts, and their renewal: by one process at a time, under a lease in the row.

use super::{
    accounts::{AccountDependencies, Holder, StoredAccount, StoredRow, Token, unavailable},
    fetch::Fetch,
    grant::{self, NoTokens},
};
use crate::Egress;
use domain::{Code, Error};
use ports::{Expect, Secret};
use std::{sync::Arc, time::Duration};

/// For so long a process that renews a token has the others wait: an issuer may end an account whose refresh token comes twice.
const LEASE: Duration = Duration::from_secs(30);
/// How often the others look.
const LOOKED_EVERY: Duration = Duration::from_millis(200);

impl AccountDependencies {
    /// The token of an account, renewed where its time is nearly up or where it is `refused`, which the server did not take; none where a
    /// person has to sign in.
    ///
    /// # Errors
    /// When the account cannot be read, or its issuer cannot be asked now.
    pub(crate) async fn token(
        &self,
        egress: &Arc<dyn Egress>,
        holder: &Holder,
        refused: Option<&str>,
    ) -> Result<Option<Token>, Error> {
        loop {
            let Some(StoredRow { value: account, rev, renewing_until }) =
                self.read::<StoredAccount>(&holder.key(), &holder.place()).await?
            else {
                return Ok(None);
            };
            let secrets = [&account.access_token].into_iter().chain(&account.refresh_token);
            self.learn(secrets.chain(&account.client.secret));
            let (token, now) = (account.token(), self.clock.now());
            let is_refused = Some(token.secret.expose()) == refused;
            if !is_refused && token.is_good(now) {
                return Ok(Some(token));
            }
            if account.refresh_token.is_none() {
                // Its clock may be behind ours: the server says whether it takes the token.
                return Ok(Some(token).filter(|_| !is_refused));
            }
            // A lease that ends later than any can was written before the clock was set back. The clocks of two processes differ by less than a lease.
            if renewing_until.is_some_and(|until| now < until && until <= now + 2 * LEASE) {
                tokio::time::sleep(LOOKED_EVERY).await;
                continue;
            }
            if self.write(holder, &account, Some(now + LEASE), Expect::Rev(rev)).await? {
                let (accounts, egress, holder) = (self.clone(), egress.clone(), holder.clone());
                // On a task of its own: the request that needs the token may be given up, and an answer that nobody keeps would cost the account.
                let renewing = tokio::spawn(async move { accounts.renew(&*egress, &holder, account, rev + 1).await });
                return renewing.await.map_err(unavailable)?;
            }
        }
    }

    /// Renews a token, under the lease that the row has at this revision.
    async fn renew(
        &self,
        egress: &dyn Egress,
        holder: &Holder,
        account: StoredAccount,
        rev: u64,
    ) -> Result<Option<Token>, Error> {
        let fetch = Fetch { egress, allow_private: holder.allow_private };
        let refresh = account.refresh_token.as_ref().map_or("", Secret::expose);
        let pairs = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("resource", &*account.resource)];
        let (account, answer) = match grant::tokens(fetch, &account.issuer, &account.client, &pairs).await {
            Ok(tokens) => {
                self.learn([&tokens.access_token].into_iter().chain(&tokens.refresh_token));
                let StoredAccount { issuer, client, resource, refresh_token, since, .. } = account;
                let renewed = StoredAccount { since, ..self.account(issuer, client, resource, tokens, refresh_token) };
                let token = renewed.token();
                (renewed, Ok(Some(token)))
            }
            // Nothing makes this refresh token good again: a person has to sign in.
            Err(NoTokens::Refused(_)) => (StoredAccount { refresh_token: None, ..account }, Ok(None)),
            Err(NoTokens::Failed(why)) => (account, Err(Error::new(Code::UpstreamUnavailable, why))),
        };
        // A lost race is another sign-in: its tokens are the newer ones.
        self.write(holder, &account, None, Expect::Rev(rev)).await?;
        answer
    }
}
