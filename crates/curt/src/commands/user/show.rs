use curt_accounts::AccountServices;
use curt_core::User;
use curt_core::ports::Session;

use crate::commands::accounts::{self, format_rule, format_time_or_dash};
use crate::commands::terminal;
use crate::wiring;

pub(super) async fn print_users(services: &AccountServices, json: bool) -> anyhow::Result<()> {
    let users = accounts::all_users(services).await?;
    if json {
        let rows: Vec<_> = users.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let mut table = terminal::table([
        "email",
        "name",
        "role",
        "signs in",
        "creations",
        "redirections",
        "created",
        "disabled",
    ]);
    for user in &users {
        let or_dash = |rule| format_rule(rule).unwrap_or_else(|| "-".to_owned());
        let signs_in = if user.password_hash.is_some() {
            "yes"
        } else {
            "no"
        };
        table.add_row([
            user.email.to_string(),
            full_name(user),
            user.role.name().to_owned(),
            signs_in.to_owned(),
            or_dash(user.allowance.creations),
            or_dash(user.allowance.redirections),
            wiring::rfc3339(user.created_at),
            format_time_or_dash(user.disabled_at),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn as_json(user: &User) -> serde_json::Value {
    serde_json::json!({
        // As text: the number has more digits than a JSON number holds everywhere.
        "id": user.id.to_string(), "email": user.email, "role": user.role.name(),
        "first_name": user.first_name, "middle_name": user.middle_name, "last_name": user.last_name,
        "can_sign_in": user.password_hash.is_some(),
        "creations": format_rule(user.allowance.creations),
        "redirections": format_rule(user.allowance.redirections),
        "created_at": wiring::rfc3339(user.created_at),
        "updated_at": wiring::rfc3339(user.updated_at),
        "disabled_at": user.disabled_at.map(wiring::rfc3339),
    })
}

fn full_name(user: &User) -> String {
    let parts = [
        Some(&*user.first_name),
        user.middle_name.as_deref(),
        Some(&*user.last_name),
    ];
    let shown: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    shown.join(" ")
}

pub(super) fn print_sessions(sessions: &[Session], json: bool) -> anyhow::Result<()> {
    if json {
        let rows: Vec<_> = sessions
            .iter()
            .map(|session| {
                serde_json::json!({
                    "id": session.id, "agent": session.agent,
                    "created_at": wiring::rfc3339(session.created_at),
                    "used_at": wiring::rfc3339(session.used_at),
                    "expires_at": wiring::rfc3339(session.expires_at),
                })
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    let mut table = terminal::table(["id", "browser", "signed in", "last used", "ends"]);
    for session in sessions {
        table.add_row([
            session.id.to_string(),
            session.agent.to_string(),
            wiring::rfc3339(session.created_at),
            wiring::rfc3339(session.used_at),
            wiring::rfc3339(session.expires_at),
        ]);
    }
    println!("{table}");
    Ok(())
}
